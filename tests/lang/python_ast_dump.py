"""The syntax tree of a Python text in the form of lang/dump.cpp, made by Python's own `ast` module.

Python is the oracle for what the language has in common with it: structure, values and places.
"""

import ast
import sys

BINARY = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "LShift": "<<",
    "RShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "MatMult": "@",
}
UNARY = {"USub": "-", "UAdd": "+", "Invert": "~", "Not": "not"}
COMPARE = {
    "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "In": "in", "NotIn": "not in", "Is": "is",
    "IsNot": "is not",
}


def quoted(value):
    out = ['"']
    for c in value:
        if c in '"\\':
            out.append("\\" + c)
        elif c in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[c])
        elif ord(c) < 0x20 or ord(c) == 0x7F:
            out.append(f"\\x{ord(c):02x}")
        else:
            out.append(c)
    return "".join(out) + '"'


class Dumper:
    def __init__(self, data):
        text = data.decode("utf-8-sig")
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.out = []
        self.indent = 0
        self.tree = ast.parse(data)

    def column(self, line, offset):
        return len(self.lines[line - 1].encode()[:offset].decode()) + 1

    def between(self, line, offset, end_line, end_offset):
        return f" {line}:{self.column(line, offset)}-{end_line}:{self.column(end_line, end_offset)}"

    def place(self, node):
        return self.between(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def line(self, text):
        self.out.append("  " * self.indent + text)

    def run(self):
        self.line("Module")
        self.indent += 1
        self.body(self.tree.body)
        return "\n".join(self.out) + "\n"

    def nested(self, name, statements):
        self.line(name)
        self.indent += 1
        self.body(statements)
        self.indent -= 1

    def body(self, statements):
        for statement in statements:
            self.statement(statement)

    def expr(self, role, node):
        if node is None:
            return
        self.line(f"{role}{': ' if role else ''}{self.label(node)}{self.place(node)}")
        self.indent += 1
        self.children(node)
        self.indent -= 1

    def parameters(self, arguments):
        names = arguments.args
        defaults = [None] * (len(names) - len(arguments.defaults)) + arguments.defaults
        for name, default in zip(names, defaults):
            end = name.col_offset + len(name.arg)
            self.line(f"parameter {name.arg}{self.between(name.lineno, name.col_offset, name.lineno, end)}")
            self.indent += 1
            self.expr("annotation", name.annotation)
            self.expr("default", default)
            self.indent -= 1

    def label(self, node):
        kind = type(node).__name__
        if kind == "Name":
            return f"Name {node.id}"
        if kind == "Constant":
            value = node.value
            if value is None:
                return "None"
            if value is ...:
                return "Ellipsis"
            if isinstance(value, bool):
                return f"Bool {value}"
            if isinstance(value, int):
                return f"Int {value}"
            if isinstance(value, float):
                return f"Float {value:.17g}"
            return f"String {quoted(value)}"
        if kind == "Attribute":
            return f"Attribute {node.attr}"
        if kind == "UnaryOp":
            return f"Unary {UNARY[type(node.op).__name__]}"
        if kind == "BinOp":
            return f"Binary {BINARY[type(node.op).__name__]}"
        if kind == "Compare":
            return "Compare " + " ".join(COMPARE[type(op).__name__] for op in node.ops)
        if kind == "BoolOp":
            return "Logical " + type(node.op).__name__.lower()
        return {"IfExp": "Conditional"}.get(kind, kind)

    def bare_tuple(self, node):
        """A tuple written without parentheses of its own, which is how several indices look."""
        if not isinstance(node, ast.Tuple):
            return False
        text = ast.get_source_segment("\n".join(self.lines), node)
        if not (text.startswith("(") and text.endswith(")")):
            return True
        try:  # "(a, b)" without its first and last sign is still a list of elements, "(a), (b)" is not
            ast.parse("[" + text[1:-1] + "]")
        except SyntaxError:
            return True
        return False

    def children(self, node):
        kind = type(node).__name__
        if kind in ("Tuple", "List"):
            for element in node.elts:
                self.expr("", element)
        elif kind == "Dict":
            for key, value in zip(node.keys, node.values):
                self.expr("key", key)
                self.expr("value", value)
        elif kind == "Attribute":
            self.expr("", node.value)
        elif kind == "Call":
            self.expr("callee", node.func)
            for argument in node.args:
                self.expr("argument", argument)
            for keyword in node.keywords:
                self.expr(f"keyword {keyword.arg}", keyword.value)
        elif kind == "Subscript":
            self.expr("base", node.value)
            for index in node.slice.elts if self.bare_tuple(node.slice) else [node.slice]:
                self.expr("index", index)
        elif kind == "Slice":
            self.expr("lower", node.lower)
            self.expr("upper", node.upper)
            self.expr("step", node.step)
        elif kind == "UnaryOp":
            self.expr("", node.operand)
        elif kind == "BinOp":
            self.expr("", node.left)
            self.expr("", node.right)
        elif kind == "Compare":
            for operand in [node.left] + node.comparators:
                self.expr("", operand)
        elif kind == "BoolOp":
            for operand in node.values:
                self.expr("", operand)
        elif kind == "IfExp":
            self.expr("if", node.test)
            self.expr("then", node.body)
            self.expr("else", node.orelse)
        elif kind == "Lambda":
            self.parameters(node.args)
            self.expr("body", node.body)

    def is_elif(self, node):
        line = self.lines[node.lineno - 1].encode()
        return line[node.col_offset :].startswith(b"elif")

    def statement(self, node):
        kind = type(node).__name__
        place = self.place(node)
        if kind == "Import":
            for i, name in enumerate(node.names):
                start = node if i == 0 else name
                where = self.between(start.lineno, start.col_offset, name.end_lineno, name.end_col_offset)
                self.line(f"Import {name.name} as {name.asname or name.name.split('.')[0]}{where}")
            return
        if kind == "ImportFrom":
            names = "".join(f" {name.name} as {name.asname or name.name}" for name in node.names)
            self.line(f"From {node.module} import{names}{place}")
            return
        if kind == "FunctionDef" and node.decorator_list:
            first = node.decorator_list[0]
            place = self.between(first.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        label = {
            "AnnAssign": "AnnotatedAssign", "FunctionDef": f"Function {getattr(node, 'name', '')}",
            "AugAssign": f"AugmentedAssign {BINARY.get(type(getattr(node, 'op', None)).__name__)}",
        }.get(kind, kind)
        self.line(label + place)
        self.indent += 1
        if kind == "Assign":
            self.expr("target", node.targets[0])
            self.expr("value", node.value)
        elif kind == "AnnAssign":
            self.expr("target", node.target)
            self.expr("annotation", node.annotation)
            self.expr("value", node.value)
        elif kind == "AugAssign":
            self.expr("target", node.target)
            self.expr("value", node.value)
        elif kind == "FunctionDef":
            for decorator in node.decorator_list:
                self.expr("decorator", decorator)
            self.parameters(node.args)
            self.expr("returns", node.returns)
            self.nested("body", node.body)
        elif kind == "For":
            self.expr("target", node.target)
            self.expr("in", node.iter)
            self.nested("body", node.body)
        elif kind == "While":
            self.expr("condition", node.test)
            self.nested("body", node.body)
        elif kind == "If":
            while True:
                self.expr("condition", node.test)
                self.nested("body", node.body)
                if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and self.is_elif(node.orelse[0]):
                    node = node.orelse[0]
                    continue
                break
            if node.orelse:
                self.nested("else", node.orelse)
        elif kind == "With":
            for item in node.items:
                self.expr("context", item.context_expr)
                self.expr("as", item.optional_vars)
            self.nested("body", node.body)
        elif kind in ("Return", "Expr"):
            self.expr("", node.value)
        elif kind == "Assert":
            self.expr("condition", node.test)
            self.expr("message", node.msg)
        elif kind not in ("Pass", "Break", "Continue"):
            raise ValueError(f"{kind} is not in the language")
        self.indent -= 1


def dump(data):
    return Dumper(data).run()


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as stream:
        sys.stdout.write(dump(stream.read()))
