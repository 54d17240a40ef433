"""tierfuzz.forecast"""
