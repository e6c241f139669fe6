"""Where members stand, whatever lies between them."""

from __future__ import annotations

import pytest

from forewarn.tables.places import Place, Places

TEXT = '''# A comment with [[scope]] and name = "x".
subscription_id = "s" # [[scope]]

[periods]
margin = "2s"
[[scope]]
name = """
[[scope]]
name = "inside" """
'quoted' = \'\'\'
kind = 1\'\'\'
list = [ # name = 1
  "one", ["x",
  "y"],

  "three [",
  { a = "b" }, 4,
]
  [[scope.machine]]
  name = "m" # a comment
  tags.role = "web"
  [ scope . machine . deep ]
  key = "]"
[[scope]]
  [[scope.machine]]
  [["scope".machine]]
  address = "a\\"b[" # [
  last = 1'''


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ((), 1),
        (("absent",), 1),
        (("subscription_id",), 2),
        (("periods",), 4),
        (("periods", "margin"), 5),
        (("periods", "absent"), 4),
        (("scope",), 6),
        (("scope", 0), 6),
        (("scope", 0, "name"), 7),
        (("scope", 0, "quoted"), 10),
        (("scope", 0, "kind"), 6),
        (("scope", 0, "list"), 12),
        (("scope", 0, "list", 0), 13),
        (("scope", 0, "list", 1), 12),
        (("scope", 0, "list", 2), 16),
        (("scope", 0, "list", 3, "a"), 17),
        (("scope", 0, "machine", 0), 19),
        (("scope", 0, "machine", 0, "name"), 20),
        (("scope", 0, "machine", 0, "tags", "role"), 21),
        (("scope", 0, "machine", 0, "deep", "key"), 23),
        (("scope", 1), 24),
        (("scope", 1, "machine", 0, "name"), 25),
        (("scope", 1, "machine", 1), 26),
        (("scope", 1, "machine", 1, "address", 0), 27),
        (("scope", 1, "machine", 1, "last"), 28),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_member_stands_on_its_line_or_at_its_table(place: Place, line: int, newline: str) -> None:
    assert Places(TEXT.replace("\n", newline)).line(place) == line
