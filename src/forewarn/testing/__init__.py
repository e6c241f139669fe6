"""The test kit, for our own suite and for everybody who builds on forewarn.

Law: public and kept as carefully as the rest. Whatever stands in for the real thing here keeps
the same promises, and the contract suites say which. Only this room imports pytest and Hypothesis.
"""
