"""tierfuzz.oracles"""
