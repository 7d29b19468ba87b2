"""What the passes propose that write out or drop a name: of parameters, attributes, imports."""

from __future__ import annotations

from repros.scripts.reduce.attributes import OfClass, SelfValues, Subclasses
from repros.scripts.reduce.blocks import Flattened
from repros.scripts.reduce.code import Code
from repros.scripts.reduce.imports import Merged, Paths
from repros.scripts.reduce.names import names_of
from repros.scripts.reduce.parameters import Parameters, Returned
from repros.scripts.reduce.statements import Decorators, Unbound
from tests.scripts.reduce.rendered import changed, each, whole


def test_decorators_go_one_by_one() -> None:
    source = "@a\n@b(\n    1\n)\ndef f():\n    pass\n"
    assert each(Decorators(), source) == ["@b(\n    1\n)\ndef f():\n    pass\n", "@a\ndef f():\n    pass\n"]


def test_names_that_nothing_reads_go() -> None:
    assert each(Unbound(), "x = f()\nwith g() as h:\n    x = j(x)\n") == [
        "x = f()\nwith g():\n    x = j(x)\n",
        "x = f()\nwith g() as h:\n    j(x)\n",
    ], "the second x is read by nothing behind it"
    assert whole(Unbound(), "for i, (a, b) in enumerate(c):\n    f(a)\n") == "for (a, b) in c:\n    f(a)\n"
    assert not changed(
        Unbound(),
        "x = f()\ng(x)\n",
        "for i, a in enumerate(b):\n    f(i, a)\n",
        "with a() as b:\n    c(b)\n",
        "x = 1\n",
    )


def test_a_block_is_flat_where_it_may_be() -> None:
    assert whole(Flattened(), "if a:\n    raise b\nelse:\n    c()\n    d()\n") == "if a:\n    raise b\nc()\nd()\n"
    assert whole(Flattened(), "if a or b:\n    if c:\n        d()\n") == "if (a or b) and c:\n    d()\n"
    assert whole(Flattened(), "with a as b:\n    with c:\n        d()\n") == "with a as b, c:\n    d()\n"
    assert not changed(
        Flattened(),
        "if a:\n    b()\nelse:\n    c()\n",
        "if a:\n    return\nelif b:\n    c()\n",
        "if a:\n    if b:\n        c()\n    d()\n",
        "if a:\n    if b:\n        c()\nelse:\n    d()\n",
    )


def test_a_parameter_goes_with_its_arguments() -> None:
    source = "def f(a, b, c=2):\n    return a\nf(1, b=x)\ng = f(y, 3, 4)\n"
    assert whole(Parameters(), source) == "def f(a):\n    return a\nf(1)\ng = f(y)\n", "only a is read"
    assert whole(Parameters(), "def f(a, b):\n    return -a + b\nf(4, x)\nf(4, y)\n") == (
        "def f(b):\n    return -4 + b\nf(x)\nf(y)\n"
    ), "a is always 4"
    made = "class A(B):\n    def __init__(self, n, m):\n        self.n = n\nA(i, 2).go(3)\n"
    assert whole(Parameters(), made) == made.replace("n, m", "n").replace("i, 2", "i")
    assert not changed(
        Parameters(),
        "def f(a):\n    pass\nf(*b)\n",
        "def f(a):\n    pass\nf(1)\nmap(f, b)\n",
        "@g\ndef f(a):\n    pass\nf(1)\n",
        "def f(a, *b):\n    pass\nf(1)\n",
        'def f(a):\n    pass\nx = f"{f(1)}"\n',
        "def f(a):\n    return a\nf(1)\nf(2)\n",
    )


def test_a_function_that_only_returns_stands_in_the_place_of_its_calls() -> None:
    assert whole(Returned(), "def f(a, b):\n    return a * b.c\nx = f(1 + 2, d)\n") == "x = (1 + 2) * d.c\n"
    assert whole(Returned(), "f = lambda: g(1)\nh(f(), f())\n") == "h(g(1), g(1))\n"
    assert not changed(
        Returned(),
        "def f(a):\n    b()\n    return a\nf(1)\n",
        "def f(a=1):\n    return a\nf()\n",
        "def f(a):\n    return a\nf(f(1))\n",
        f"f = lambda: g('{'a' * 40}')\nh(f(), f())\n",
        f"def f():\n    return '{'a' * 80}'\nprint(f())\n",
    )


def test_an_attribute_stands_where_it_is_read() -> None:
    source = """\
        class A:
            size = 4
            def __init__(self, n):
                self.n = n
                self.rows = make(3)
            def get(self):
                return self.rows, self.n, self.size
        """
    first, second = each(SelfValues(), source)
    assert "rows = make" not in first
    assert "return make(3), self.n, self.size\n" in first
    assert "size = 4" not in second
    assert "return self.rows, self.n, 4\n" in second
    assert each(SelfValues(), source + "        print(A().rows, a.size)\n") == []
    alone = "class A:\n    def set(self):\n        self.a = f()\n    def get(self):\n        return self.a\n"
    assert whole(SelfValues(), alone) == alone.replace("self.a = f()", "pass").replace("self.a", "f()")


def test_attributes_become_the_classs_own_and_empty_classes_their_base() -> None:
    source = "class A(B):\n    def __init__(self):\n        super().__init__()\n        self.a = f(1)\n"
    assert whole(OfClass(), source) == "class A(B):\n    a = f(1)\n"
    assert not changed(
        OfClass(),
        source.replace("f(1)", "self.b"),
        source.replace("(self)", "(self, n)"),
        source.replace("a = f", "a.b = f"),
        "class A(B):\n    def __init__(self):\n        super().__init__()\n",
    )
    assert whole(Subclasses(), "class A(b.C):\n    pass\nx = A(A)\n") == "x = b.C(b.C)\n"
    assert whole(Subclasses(), "class A(B, C):\n    pass\nx = A()\n") == "class A(B, C):\n    pass\nx = A()\n"
    tree = Code("class A:\n    a = 1\nself.a\n").tree
    assert not names_of(tree).lacks(names_of(tree))
    assert names_of(Code("self.a\n").tree).lacks(names_of(tree)), "the class sets it"


def test_names_are_read_by_the_path_of_a_package_that_is_imported_anyway() -> None:
    assert whole(Paths(), "import torch\nfrom torch.utils.data import DataLoader as L\nL(torch)\n") == (
        "import torch\ntorch.utils.data.DataLoader(torch)\n"
    )
    assert whole(Paths(), "import a.b as c\nimport a.b.d as e\ne.f(c)\n") == "import a.b as c\nc.d.f(c)\n"
    long = f"import torch\nfrom torch.utils.data import DataLoader\nx = DataLoader('{'a' * 60}')\n"
    assert not changed(
        Paths(), "import torch\nfrom lightning import T\nT()\n", 'import a\nfrom a import b\nf"{b}"\n', long
    )
    assert whole(Merged(), "from a import b\nimport c\nfrom a import d as e\n") == "from a import b, d as e\nimport c\n"
