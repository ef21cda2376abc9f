"""Edits of XML documents: what changes, what must stay, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agents.formats.xml_document import XmlError, element_path, flatten, parse_xml, select
from agents.steps.xml_edit.edits import AnyXmlEdit, edit_document, effective
from tests.properties import given, settings, st

EDITS: TypeAdapter[tuple[AnyXmlEdit, ...]] = TypeAdapter(tuple[AnyXmlEdit, ...])

SERVER = b"""<?xml version='1.0' encoding='utf-8'?>
<!--
  A comment before the root
-->
<Server port="8005" shutdown="SHUTDOWN">
  <!-- <Connector port="1"/> -->
  <Service name="Catalina">
    <Connector port="8080"   protocol="HTTP/1.1"
               redirectPort="8443" />
    <Connector port="8009" protocol="AJP/1.3"/>
    <Engine name="Catalina"><Host name="localhost">
        <Valve className="A"/>
        <Valve className="B" pattern="%h &quot;%r&quot; &lt;"/>
      </Host></Engine>
  </Service>
</Server>
<!-- a comment behind the root -->
"""


def edited(*edits: dict[str, Any], data: bytes = SERVER) -> str:
    return edit_document(data, EDITS.validate_python(edits))[0].decode()


def set_(path: str, expect: int = 1, **attributes: object) -> dict[str, Any]:
    return {"op": "set", "select": path, "attributes": attributes, "expect": expect}


@pytest.mark.parametrize(
    "edit, line",
    [
        (set_("Service/Connector[@port='8080']", maxThreads=7), 'redirectPort="8443" maxThreads="7"/>'),
        (set_("Server/Service/Connector[2]", secretRequired=False), 'protocol="AJP/1.3" secretRequired="false"/>'),
        (set_('/Server/Service/Connector[@protocol="AJP/1.3"]', port=9), '<Connector port="9" protocol="AJP/1.3"/>'),
        (set_("Service/Connector[1]", redirectPort=None), '<Connector port="8080" protocol="HTTP/1.1"/>'),
        (set_("Server", port=-1), '<Server port="-1" shutdown="SHUTDOWN">'),
        (set_("Service/Connector", 2, x="a&b<\"'"), 'x="a&amp;b&lt;&quot;\'"/>'),
        ({"op": "add", "under": "Service", "tag": "E"}, "</Engine>\n    <E/>\n  </Service>"),
        ({"op": "add", "under": "Service", "tag": "E", "position": "first"}, "\n    <E/>\n    <Connector"),
        (
            {"op": "add", "under": "Service", "tag": "E", "position": "before", "before": "Service/Engine"},
            '"AJP/1.3"/>\n    <E/>\n    <Engine',
        ),
        ({"op": "add", "under": "Service/Connector[2]", "tag": "E"}, 'protocol="AJP/1.3"><E/></Connector>'),
        (
            {"op": "remove", "select": "Service/Engine/Host/Valve[@className='B']"},
            '<Valve className="A"/>\n      </Host>',
        ),
        ({"op": "remove", "select": "Service/Connector", "expect": 2}, 'name="Catalina">\n    <Engine'),
    ],
)
def test_an_edit_changes_its_place_and_keeps_all_else(edit: dict[str, Any], line: str) -> None:
    text = edited(edit)
    assert line in text
    assert text.startswith("<?xml version='1.0' encoding='utf-8'?>\n<!--\n  A comment before the root\n-->\n<Server")
    assert text.endswith("</Server>\n<!-- a comment behind the root -->\n")
    assert '<!-- <Connector port="1"/> -->' in text


@pytest.mark.parametrize(
    "edit, message",
    [
        (set_("Service/Connectors", a="1"), "no element matches Service/Connectors, expected 1"),
        (set_("Service/Connector", a="1"), "2 elements match Service/Connector, expected 1"),
        (set_("Service/Connector", 3, a="1"), "2 elements match Service/Connector, expected 3"),
        (set_("/Service/Connector", 3, a="1"), "no element matches"),
        (set_("Service/Connector[3]", a="1"), "no element matches"),
        ({"op": "remove", "select": "Server"}, "root element cannot be removed"),
        ({"op": "add", "under": "Nowhere", "tag": "E"}, "no element matches Nowhere"),
        (
            {"op": "add", "under": "Service", "tag": "E", "position": "before", "before": "Service/Engine/Host"},
            "not a child",
        ),
    ],
)
def test_an_edit_that_does_not_fit_says_why(edit: dict[str, Any], message: str) -> None:
    with pytest.raises(XmlError, match=message.replace("[", r"\[")):
        edited(edit)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<a>",
        b"<a/><b/>",
        b"\xff\xfe",
        b"<?xml version='1.0' encoding='klingon'?><a/>",
        b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
        b"<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a b="1">&x;</a>',
        b"<a>&undefined;</a>",
        "<?xml version='1.0' encoding='utf-16'?><a/>".encode("utf-16"),
        b"<a>" * 5000,
    ],
)
def test_a_document_that_cannot_be_trusted_is_refused(data: bytes) -> None:
    with pytest.raises(XmlError):
        edit_document(data, EDITS.validate_python([set_("a", b="2")]))


def test_nothing_is_rewritten_when_everything_is_so_already() -> None:
    edits = EDITS.validate_python([set_("Service/Connector[1]", port="8080", absent=None)])
    data, changes = edit_document(SERVER, edits)
    assert data == SERVER
    assert [(c.setting, c.before, c.wanted) for c in changes] == [
        ("Server/Service/Connector@port", "8080", "8080"),
        ("Server/Service/Connector@absent", None, None),
    ]


def test_the_encoding_and_a_namespace_of_the_document_are_kept() -> None:
    latin = "<?xml version='1.0' encoding='ISO-8859-1'?>\n<a b='ä'/>".encode("latin-1")
    data, _ = edit_document(latin, EDITS.validate_python([set_("a", c="ö€")]))
    assert data.decode("latin-1").endswith('<a b="ä" c="ö&#8364;"/>')
    web = b'<web-app xmlns="urn:x"><session/></web-app>'
    added = edited({"op": "add", "under": "session", "tag": "timeout", "attributes": {"m": 3}}, data=web)
    assert added == '<web-app xmlns="urn:x"><session><timeout m="3"/></session></web-app>'


def test_an_added_element_and_a_removed_one_are_settings_of_their_own() -> None:
    edits = EDITS.validate_python(
        [
            {"op": "add", "under": "Service", "tag": "Executor", "attributes": {"name": "p"}, "position": "first"},
            {"op": "add", "under": "Service", "tag": "Connector"},
            {"op": "remove", "select": "Service/Engine/Host/Valve[@className='A']"},
        ]
    )
    data, changes = edit_document(SERVER, edits)
    assert [(c.setting, c.before, c.wanted, effective(SERVER, c), effective(data, c)) for c in changes] == [
        ("Server/Service/Executor@name", None, "p", None, "p"),
        ("Server/Service/Connector[3]", None, "present", None, "present"),
        ("Service/Engine/Host/Valve[@className='A']", "present", None, "present", None),
    ]


def test_a_document_flattens_to_paths_that_select_their_elements_again() -> None:
    flat = flatten(SERVER)
    assert flat["Server/Service/Connector@port"] == "8080"
    assert flat["Server/Service/Connector[2]@protocol"] == "AJP/1.3"
    assert flat["Server/Service/Engine/Host/Valve[2]@pattern"] == '%h "%r" <'
    assert flatten(b"<a><b> text </b><c/></a>") == {"a/b": "text"}
    root = parse_xml(SERVER)
    for element in root.iter("*"):
        assert select(root, element_path(element))[0] is element


NAMES = st.sampled_from(["a", "b", "c", "a-1", "é"])
TEXT = st.text(max_size=8)
PATHS = st.lists(
    st.builds(
        lambda n, c: n + c, NAMES, st.sampled_from(["", "[1]", "[2]", "[@a='1']", '[@b=""]', "[@a='<&']", "[0]"])
    ),
    min_size=1,
    max_size=3,
).map("/".join)
ATTRIBUTES = st.dictionaries(NAMES | TEXT, TEXT | st.integers() | st.booleans() | st.none(), max_size=2)
ANY_EDIT = st.one_of(
    st.fixed_dictionaries(
        {"op": st.just("set"), "select": PATHS | TEXT, "attributes": ATTRIBUTES, "expect": st.integers(0, 3)}
    ),
    st.fixed_dictionaries(
        {"op": st.just("add"), "under": PATHS, "tag": NAMES | TEXT, "attributes": ATTRIBUTES},
        optional={"position": st.sampled_from(["first", "last", "before"]), "before": PATHS},
    ),
    st.fixed_dictionaries({"op": st.just("remove"), "select": PATHS, "expect": st.integers(1, 3)}),
)
TREES = st.recursive(
    st.sampled_from(["", "text", "<!-- c -->", "<?p i?>", "<![CDATA[<]]>", "&lt;", "\n  ", "&#13;"]),
    lambda inner: st.builds(
        lambda name, attribute, body: f"<{name}{attribute}>{''.join(body)}</{name}>",
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["", " a='1'", " b=''", " xmlns='urn:x'", " a='&lt;&amp;'"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)
DOCUMENTS = TREES.map(lambda tree: f"<a>{tree}</a>".encode()) | st.binary(max_size=40)


@settings(deadline=None, max_examples=300)
@given(DOCUMENTS, st.lists(ANY_EDIT, min_size=1, max_size=3))
def test_whatever_comes_in_an_edit_succeeds_or_says_why(data: bytes, raw: list[dict[str, Any]]) -> None:
    try:
        edits = EDITS.validate_python(raw)
    except ValidationError:
        return
    try:
        out, changes = edit_document(data, edits)
    except XmlError:
        return
    for change in changes:
        if change.before != "present":
            assert effective(out, change) == change.wanted
