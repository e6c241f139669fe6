"""What operators write down: the fleet file, and the environment of this process.

Law: no other room reads a settings file or the environment, and no room below has heard of this
one: they take plain arguments. A file is understood as a whole or refused as a whole, with all
that is wrong in it, each with its line and its remedy.
"""
