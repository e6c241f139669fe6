"""Who is calling: from a listener and a source address to a machine.

Law: the network alone says who somebody is; nothing that a request says of itself ever reaches
this room. Whoever is not known for certain is a stranger.
"""
