"""The spelling of what is sent and stored: Azure's bytes, per api-version, and our own JSON.

Law: sans-IO. Functions from values to bytes and from bytes to values; bytes that make no sense
raise an error of ours, never a decoder's. Azure's words (Resources, NotBefore, StartRequests)
stop at this room's door. What Azure does, and how we know, is in docs/protocol/.
"""
