"""Inspection: what a server tells of itself, asked in each server's own words.

Reads only, waits for no lock, and needs no privilege that a worker has not; what an account may
not see is said, not guessed.
"""
