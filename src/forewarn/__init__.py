"""forewarn: fair warning for every virtual machine before something happens to it."""

__version__ = "0.1.0"
