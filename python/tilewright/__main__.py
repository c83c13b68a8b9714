"""python -m tilewright is the program."""
from ._program import main

main()
