"""Measurements: one server process on one core, the load on another, in interleaved rounds.

Law: what is measured is the real thing, `forewarn serve` with all its limits, counters and checks.
"""
