"""Which documented failures concern what is installed or pinned: `repros audit`.

source -> subject -> findings -> decisions -> shown. A source reads one kind of file into a
:class:`~repros.audit.subject.Subject`; assessing is pure; a format shows it. Nothing is run and nothing is installed.
"""
