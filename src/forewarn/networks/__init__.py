"""Links between guests and the endpoint: what a host needs so that nobody can pretend to be a neighbor.

Law: what is to be done follows from what is wanted and what was found, both values; `commands` alone
runs programs, and `responder` alone has a socket.
"""
