"""The scenarios that come with forewarn, as files.

Law: nothing but TOML lives here; `config.scenarios` reads it.
"""
