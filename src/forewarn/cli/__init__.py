"""The command line: words in, text or JSON and an exit status out.

Law: apart from the commands that run a service, this room is a client of the control API like any
other: it decides nothing that the service decides, and never opens the store. Tables are for
people, `--json` is for programs; errors are one line that says what to do next.
"""
