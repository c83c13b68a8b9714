from tilewright import *
