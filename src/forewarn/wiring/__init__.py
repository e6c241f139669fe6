"""From settings to a running service.

Law: the only room that knows every other. Plain constructor calls, top to bottom; threads and the
event loop begin and end here, and nothing below knows that it is being served.
"""
