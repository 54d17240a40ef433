"""tierfuzz.cli"""
