"""tierfuzz.report"""
