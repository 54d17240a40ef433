"""tierfuzz.worker"""
