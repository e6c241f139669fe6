"""The agent: on a plain VM it runs its owner's hooks before an event, approves, and undoes afterwards.

Law: the standard library, `client` and `tables` only, for this room goes into other people's VMs. What is to be
done is decided by functions of values (`cases`, `rules`); what was done is on disk before it is relied on, so
that neither a restart of the agent nor one of the VM is noticed by anybody. Threads live in `loop`.
"""
