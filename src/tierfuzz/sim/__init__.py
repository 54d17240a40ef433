"""tierfuzz.sim"""
