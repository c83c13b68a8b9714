from ...a import common
