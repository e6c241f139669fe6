"""The HTTP edges: functions from a request to a reply, and the sockets around them.

Law: what a request means is decided by plain functions, without a socket and without waiting;
only `server` waits and logs. Who is calling comes from the network, never from a header.
"""
