"""What others trust us by, and we them: certificates, secrets and tokens.

Law: nothing here decides who may do what. Keys are made here and leave only into files of their
owner. The libraries are large, so a start that needs nothing new from them does not load them.
"""
