"""tierfuzz.engines"""
