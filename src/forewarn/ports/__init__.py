"""What the service needs from the world, as protocols.

Law: a port is a promise in words and types. Nothing here does anything; every implementation
of a port passes the contract suite of that port in `forewarn.testing`.
"""
