"""Compare pinned or installed packages with the documented failures: `repros audit`.

source -> subject -> assessments -> report -> format. A source parses one kind of file into a
:class:`~repros.advise.audit.subject.Subject`, :func:`~repros.advise.audit.assess.assess` compares it with the
catalogue without side effects, and a format renders the report. No code is run and no package is installed.
"""
