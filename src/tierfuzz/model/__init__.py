"""tierfuzz.model"""
