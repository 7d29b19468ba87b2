"""The words by which a sentence says that one side works: without a part, in another program, with another model.

In front of each expression are words; it is compiled for sentences with one of them alone.
"""

from __future__ import annotations

WORKS = (
    r"(?<!n't )(?<!not )(?<!never )(?<!nothing )(?:works?|worked|working|(?:is|are|was|were|be|seems?"
    r"|looks?) (?:all )?(?:fine|ok|okay|right|correct|normal|good|stable)"
    r"|everything is ok|decreases? (?:normally|as expected)|trains? (?:well|fine|normally)|train(?:s|ed)? (?:well"
    r"|fine|normally)"
    r"|converges?|succeeds?|passes|no (?:such )?(?:problems?|issues?|errors?(?! (?:messages?|logs?|traces?)\b))"
    r"|(?:problem|issue|error|nan|leak|hang)s? "
    r"(?:goes away|disappears|vanish\w*|is gone|does(?:n't| not) (?:occur|happen|appear))"
    r"|(?:did|does|do)(?:n't| not) (?:occur|happen|appear|crash|hang|fail|cause)\b[^.\n,;]{0,30}|normal(?:ly)?"
    r"|(?:falls?|learns|trains) as (?:usual|expected)|no such trouble|runs? (?:fine|well))"
)
_NAME = r"(?P<part>(?:the |my |an? |any )?[`'\"]?[\w./=:-]+[`'\"]?(?: [`'\"]?[\w./=:-]+[`'\"]?){0,3}?)"
_END = (
    r"(?=\s*(?:[.,;:!?)\n]|$|\b(?:it|the|and|but|so|then|everything|training|loss|i|we|which|while|with|for|in|on"
    r"|to|is|are)\b))"
)
_WITHOUT = (
    r"(?:without(?: using| enabling)?|(?:when|if|after|by|once) (?:i |we |you )?(?:am |are |do |is )?(?:not "
    r"|n't )(?:using|use|enable|enabling)"
    r"|(?:i|we) (?:am|are|'m|do) (?:not|n't) (?:using|use)"
    r"|(?:when|if|after|by|once|upon)?\s*(?:i |we |you )?(?:disabl\w+|turn(?:ed|ing|s)? off|remov\w+|switch\w* off"
    r"|comment\w* out|uninstall\w+|dropp(?:ed|ing)))"
)
_OFF = r"(?<![\w.])[A-Za-z_][\w.]*`? ?(?:=|:|to) ?`?[\"']?(?:False|0|None|off|eager|sdpa|disabled?)\b[\"']?`?"
_LEFT_OUT = (
    "without",
    "n't us",
    "not us",
    "not enabl",
    "disabl",
    "turn",
    "remov",
    "switch",
    "comment",
    "uninst",
    "dropp",
)
PART = (
    (_LEFT_OUT, rf"\b{WORKS}\b[^.\n;]{{0,50}}?\b{_WITHOUT} {_NAME}{_END}"),
    (_LEFT_OUT, rf"\b{_WITHOUT} {_NAME}{_END}[^\n;]{{0,60}}?\b{WORKS}\b"),
    (
        (" on:", " on,", "enabled:", "enabled,"),
        rf"\b{_NAME} (?:on|enabled)[:,][^.\n]{{0,60}}?\b(?:off|disabled)[:,] ?(?:it )?{WORKS}\b",
    ),
    (
        ("removed:", "removed,", "disabled:", "disabled,", " off:", " off,", "uninstalled"),
        rf"\b{_NAME} (?:removed|disabled|off|uninstalled)[:,] ?[^.\n;]{{0,30}}?\b{WORKS}\b",
    ),
    (
        (" at 0", " off", "disabled", "removed", "= 0", "=0", "set to"),
        rf"\b{WORKS} with {_NAME} (?:at 0|off|disabled|removed|= ?0|set to (?:0|False|None))\b",
    ),
    (
        ("only ",),
        (
            r"\bonly (?:happens?|occurs?|fails?|appears?|crash\w*|hangs?) (?:when|if|with)(?: i| we| you)?"
            rf"(?: am| are)?(?: use| using| enabl\w+| turn\w* on| set(?:ting)?)? {_NAME}{_END}"
        ),
    ),
)
PROGRAM = (
    (
        ("repo", "framework", "trainer", "library", "codebase", "implementation", "toolkit"),
        (
            rf"\b{WORKS}\b[^.\n;]{{0,40}}?\b(?:using|with|in|by) {_NAME} (?:repo(?:sitory)?|framework|trainer"
            rf"|library"
            r"|codebase|implementation|toolkit)\b"
        ),
    ),
    (
        (" the same ",),
        rf"(?:^|[.;\n] ?){_NAME} (?:at|with|on|from) the same [\w ]{{2,40}}: ?[^.\n;]{{0,20}}?\b{WORKS}\b",
    ),
)
MODEL = (
    (
        (" same command", " same script", " same code", " same config", " same settings"),
        (
            r"\bthe same (?:command|script|code|config\w*|settings)\b[^.\n;]{0,20}? (?:on|with|for) "
            rf"(?P<part>(?:the |an? )?[\w./-]+(?: [\w./-]+){{0,4}}?) (?:does|do|{WORKS})\b"
        ),
    ),
)
SET = (
    (
        ("false", "none", "0", "off", "eager", "sdpa", "disable"),
        (
            rf"(?P<part>{_OFF})[^.\n;]{{0,40}}?(?<!not )(?<!n't )\b(?:{WORKS}|fix(?:es|ed)|solve[sd]|resolve[sd]"
            rf"|helps"
            rf"|avoids)\b"
        ),
    ),
    (
        ("false", "none", "0", "off", "eager", "sdpa", "disable"),
        rf"\b{WORKS}\b[^.\n;]{{0,30}}?\b(?:with|when|if)(?: i| we)?(?: set(?:ting)?)? `?(?P<part>{_OFF})",
    ),
)
"""What is switched off where it works."""
