"""Where records live, one file per technology.

Law: a store serves its port and knows nothing of scopes, events or callers: it keeps versioned
bytes and a journal of bytes. Every store passes `forewarn.testing.store_contract`.
"""
