"""What each pass proposes: every reduction alone, as the source that it leaves."""

from __future__ import annotations

from textwrap import dedent

import pytest

from repros.scripts.reduce import search
from repros.scripts.reduce.attributes import Chains, Parts
from repros.scripts.reduce.blocks import Called, Unwrapped
from repros.scripts.reduce.code import Code, read
from repros.scripts.reduce.expressions import Annotations, Elements, Values
from repros.scripts.reduce.inlining import CommandLine, Constants, Defaults, Once
from repros.scripts.reduce.layout import lay_out
from repros.scripts.reduce.statements import Elses, Mentions, Statements, Unread
from tests.scripts.reduce.rendered import changed, each, whole


def test_statements_by_depth() -> None:
    source = "import os\nif os:\n    a = 1\n    b = 2\n"
    assert each(Statements(0), source) == ["if os:\n    a = 1\n    b = 2\n", "import os\n"]
    assert each(Statements(1), source) == ["import os\nif os:\n    b = 2\n", "import os\nif os:\n    a = 1\n"]
    assert whole(Statements(1), source) == "import os\nif os:\n    pass\n"


def test_a_decorator_goes_with_its_function_and_an_elif_without_a_pass() -> None:
    assert whole(Statements(0), "@first\n@second\ndef f():\n    pass\n") == ""
    assert each(Statements(1), "if a:\n    x = 1\nelif b:\n    y = 2\n")[-1] == "if a:\n    x = 1\n"


@pytest.mark.filterwarnings("error")
def test_a_candidate_that_python_warns_of_is_read_in_silence() -> None:
    assert read("x = [1 [0]]\n") is not None
    assert read("x = [\n") is None


def test_text_that_is_no_ascii_keeps_the_places_right() -> None:
    assert each(Values(), 'x = f("ü", g("日本", y))\n')[-1] == 'x = f("ü", y)\n'


def test_all_that_mentions_a_name_goes_at_once() -> None:
    found = each(
        Mentions(),
        """\
        import logging
        logger = logging.getLogger()
        class Net:
            def __init__(self):
                self.a = 1
                self.b = self.a
        logger.info("x")
        net = Net()
        """,
    )
    net = "class Net:\n    def __init__(self):\n        self.a = 1\n        self.b = self.a\nnet = Net()\n"
    without_logger = f"import logging\n{net}"
    assert without_logger in found
    assert any("self.a" not in source and "logger.info" in source for source in found)


def test_what_nothing_reads() -> None:
    source = """\
        import json
        import os
        class Net:
            def __init__(self):
                self.a = self.b = 1
                self.c = 2
            def size(self):
                return self.c
        def unused():
            pass
        x, y = 1, 2
        z = Net().size()
        print(os, y)
        """
    gone = {"import json", "self.a = self.b = 1", "def unused():", "pass", "z = Net().size()"}
    left = whole(Unread(), source)
    assert not any(text in left for text in gone)
    assert {line.strip() for line in left.splitlines()} == {
        line.strip() for line in dedent(source).splitlines() if line.strip() not in gone
    }


def test_elses_and_names_of_imports() -> None:
    assert each(Elses(), "try:\n    a()\nexcept E:\n    b()\nelse:\n    c()\nfinally:\n    d()\n") == [
        "try:\n    a()\nexcept E:\n    b()\nfinally:\n    d()\n",
        "try:\n    a()\nexcept E:\n    b()\nelse:\n    c()\n",
    ]
    assert each(Elses(), "from a import (\n    b,\n    c as d,\n)\n") == ["from a import c as d\n", "from a import b\n"]


def test_blocks_lose_their_header() -> None:
    source = "if a:\n    with b:\n        c()\n        d()\nelse:\n    e()\n"
    assert each(Unwrapped(), source) == [
        "with b:\n    c()\n    d()\n",
        "e()\n",
        "if a:\n    c()\n    d()\nelse:\n    e()\n",
    ]
    assert each(Unwrapped(conditions=False), source) == ["if a:\n    c()\n    d()\nelse:\n    e()\n"]


def test_a_function_that_is_called_once_stands_in_the_place_of_its_call() -> None:
    source = "def make(n, size=4):\n    x = n * size\n    return [x]\ndata = make(3)\n"
    assert whole(Called(), source) == "size = 4\nn = 3\nx = n * size\ndata = [x]\n"
    assert whole(Called(), "def main():\n    a()\nif b:\n    main()\n") == "if b:\n    a()\n"
    assert not changed(
        Called(),
        "def f():\n    return 1\nf(f)\n",
        "def f():\n    if a:\n        return 1\n    b()\nf()\n",
        "def f(*args):\n    a()\nf(1)\n",
        "@g\ndef f():\n    a()\nf()\n",
    )


def test_arguments_elements_and_defaults_go_with_their_commas() -> None:
    assert each(Elements(), "f(a, *b, c=1)\n") == ["f(a, *b)\n", "f(a, c=1)\n", "f(*b, c=1)\n"]
    assert whole(Elements(), "f(\n    a,\n    b,\n)\n").split() == ["f(", ")"]
    assert whole(Elements(), "x = {'a': 1, 'b': 2}\n") == "x = {}\n"
    assert each(Elements(), "def f(a, b=1, c=2):\n    pass\n") == [
        "def f(a, b=1):\n    pass\n",
        "def f(a, c=2):\n    pass\n",
    ]
    assert each(Elements(), "x = (1, 2)\n") == []
    assert all(read(source) for source in each(Elements(), "f(a, [b, (c, d, e)], **g)\n"))


def test_a_class_loses_its_bases_and_with_the_last_one_the_brackets() -> None:
    source = "class A(b.C, D, metaclass=M):\n    def f(self):\n        pass\n"
    assert "class A(D, metaclass=M):\n" in "".join(each(Elements(), source))
    assert whole(Elements(), source) == "class A:\n    def f(self):\n        pass\n"


def test_annotations_go() -> None:
    source = (
        "def f(a: int, *b: t.Any, c: str = 'x') -> dict[str,\n    int]:\n    d: int = a\n    e: int\n    return d\n"
    )
    assert whole(Annotations(), source) == "def f(a, *b, c = 'x'):\n    d = a\n    e: int\n    return d\n"
    assert len(each(Annotations(), source)) == 5


def test_values_take_the_place_of_what_is_around_them() -> None:
    assert each(Values(), "y = relu(x)\n") == ["y = x\n"]
    assert each(Values(), "y = x.to(d)\n") == ["y = d\n", "y = x\n"]
    assert each(Values(), "y = self.f(x)\n") == ["y = x\n"]
    assert each(Values(), "import m\ny = m.f(x)\n")[1] == "import m\ny = None\n", "a module is no value"
    assert each(Values(), "y = a + b if c else d\n")[:2] == ["y = a + b\n", "y = d\n"]
    assert each(Values(), 'y = f"{g(x)}"\n') == [], "before Python 3.12 the places in it are wrong"


def test_constants_and_the_command_line_are_written_where_they_are_used() -> None:
    assert whole(Constants(), "n = 4\nrate = -0.1\nf(n, n, rate)\n") == "f(4, 4, -0.1)\n"
    assert whole(Constants(), "n = 4\nn = 5\nf(n)\n") == "n = 4\nn = 5\nf(n)\n"
    parser = """\
        parser.add_argument("--batch-size", "-b", type=int, default=32)
        parser.add_argument("--fp16", action="store_true")
        parser.add_argument("--out", dest="place")
        args = parser.parse_args()
        f(args.batch_size, args.fp16, args.place)
        """
    assert whole(CommandLine(), parser) == "args = parser.parse_args()\nf(32, False, None)\n"


def test_a_default_is_written_into_its_function_and_an_object_becomes_one_of_its_parts() -> None:
    source = "class Net:\n    def __init__(self, n=4):\n        self.a = Linear(n)\nnet = Net()\n"
    (written,) = each(Defaults(), source)
    assert written == "class Net:\n    def __init__(self):\n        self.a = Linear(4)\nnet = Net()\n"
    assert each(Parts(), source) == []
    assert each(Parts(), written) == [written.replace("net = Net()", "net = Linear(4)")]


def test_what_is_read_once_stands_where_it_is_read() -> None:
    assert whole(Once(), "x = f(1)\ny = g(2)\nh(x, y.t)\n") == "h(f(1), g(2).t)\n"
    assert whole(Once(), "x = a + b\nh(x.t, c * x)\n") == "x = a + b\nh(x.t, c * x)\n"
    assert whole(Once(), "x = a + b\nh(c * x)\n") == "h(c * (a + b))\n"
    assert whole(Once(), "x = f(\n    1,\n)\nfor i in x:\n    pass\n") == "for i in f(1):\n    pass\n"
    assert whole(Once(), "x = (a +\n    b)\nh(x)\n") == "h(a + b)\n", "its lines are one in brackets alone"
    assert whole(Once(), "x = f(1)\nx = g(x)\nh(x, x)\n") == "x = g(f(1))\nh(x, x)\n", "the first x is read once"
    assert not changed(
        Once(),
        "x = 1\nf(x, x)\nx = 2\nf(x, x)\n",
        "def f(x=1):\n    return x\n",
        "x = f(1)\ndef g():\n    return x\n",
        'x = f(1)\nprint(f"{x}")\n',
        f"x = f('{'a' * 60}')\nsome_function(another_argument, x)\n",
    )


def test_a_module_becomes_a_chain_of_its_layers() -> None:
    source = """\
        from __future__ import annotations
        import torch.nn as nn
        class Net(nn.Module):
            def __init__(self):
                self.a = nn.Linear(1, 1)
                self.b = nn.ReLU()
        class Other:
            def __init__(self):
                self.a = f()
        wrap(Net(), Other())
        """
    (written,) = each(Chains(), source)
    chain = "net = nn.Sequential(OrderedDict(a=nn.Linear(1, 1), b=nn.ReLU()))\nwrap(net, Other())\n"
    assert written.endswith(chain)
    assert written.splitlines()[:2] == ["from __future__ import annotations", "from collections import OrderedDict"]
    (sized,) = each(Chains(), source.replace("__init__(self)", "__init__(self, n)", 1).replace("ReLU()", "ReLU(n)"))
    assert "net = nn.Sequential(OrderedDict(a=nn.Linear(1, 1)))\n" in sized, "n is known in its class alone"
    (long,) = each(Chains(), source.replace("ReLU()", f"ReLU({'n' * 50})"))
    assert "net = nn.Sequential(OrderedDict(\n    a=nn.Linear(1, 1),\n" in long


def test_lines_that_fit_into_one_are_one() -> None:
    assert lay_out("x = f(\n    1,\n    [\n        2,\n    ],\n)\n") == "x = f(1, [2])\n"
    assert lay_out("x = (\n    1,\n)\n") == "x = (1,)\n"
    head = "class A:\n    @b\n    def f(\n        self,\n        x,\n    ):\n        pass\n"
    assert lay_out(head) == "class A:\n    @b\n    def f(self, x):\n        pass\n"
    assert lay_out("with a(\n    b\n) as c:\n    d()\n") == "with a(b) as c:\n    d()\n"
    assert lay_out("try:\n    f(\n    )\nexcept (\n    E\n):\n    pass\n").startswith("try:\n    f()\n")
    long = f"f(\n    {'a' * 50},\n    b=[\n        [1, 2],\n    ],\n    c={'c' * 50},\n)\n"
    assert lay_out(long) == f"f(\n    {'a' * 50},\n    b=[[1, 2]],\n    c={'c' * 50},\n)\n"
    for kept in ('x = """a\n( b"""\n', "if a:\n    b()\n", f"f(\n    {'a' * 50},\n    {'b' * 50},\n)\n"):
        assert lay_out(kept) == kept


@pytest.mark.parametrize(("number", "tried"), [(2, [1]), (3, [1, 2]), (10, [1, 2, 5]), (1000, [1, 2, 500])])
def test_numbers_get_smaller(number: int, tried: list[int]) -> None:
    assert search.smaller(number) == tried


def test_a_number_is_looked_at_in_all_its_places_and_then_in_each() -> None:
    code = Code("f(64, 64, n=10, flag=True, x=1, y=0.5)\n")
    found = list(search.groups(code))
    assert [(number, len(places)) for number, places in found] == [(64, 2), (10, 1), (64, 1), (64, 1)]
    assert search.render(code, found[0][1], 1) == "f(1, 1, n=10, flag=True, x=1, y=0.5)\n"
