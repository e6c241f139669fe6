"""Tables of a file that a person wrote: read member by member, with every fault's line and remedy.

Law: the standard library only, for the agent reads its file with it in other people's VMs.
"""
