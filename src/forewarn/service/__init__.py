"""The use cases: load, decide in the core, commit, tell.

Law: synchronous, and nothing here waits: what takes long is begun and observed. The desk answers
what people and guests ask, the conductor does what time brings, the registrar keeps the fleet.
"""
