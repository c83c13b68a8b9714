import tilewright as
