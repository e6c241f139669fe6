"""What a scope, an event and a notice are, and every rule about them.

Law: values and functions from values to values. No clock, chance, disk, network, thread, log or
JSON: `now` and new ids are arguments, so a test can be any day. Whether something may happen is
decided in this room and nowhere else.
"""
