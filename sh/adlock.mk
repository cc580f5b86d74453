# adlock.mk: adaptive locks for Makefile recipes.
#
#	include /usr/local/lib/adlock/adlock.mk
#
#	publish: site
#		$(ADLOCK) copy site 15 90 -- rsync -a site/ host:/srv/site/
#
# $(ADLOCK) OPERATOR OPERAND [IFELAPSED [EXPIREAFTER [HOST [NOW]]]] -- COMMAND [ARG...]
#
# takes the lock, runs COMMAND, releases; see adlock.sh, which is looked for
# beside this file. Too soon counts as done: the recipe goes on, COMMAND is not
# run; so only a COMMAND that succeeded counts, unless ADLOCK_RETRY_FAILED is 0.
# A busy or full atom is waited for, $(ADLOCK_WAIT) at most. Only COMMAND holds
# the lock: what follows a ; or && in the recipe does not.
#
# It is no $(call ...): that cuts at commas. All settings of adlock.sh can be
# set in the environment, these in the Makefile too. An atom belongs to a
# program; here that is the Makefile of the directory make runs in, so that two
# projects do not share their atoms.
#
# For GNU make, and for BSD make, which calls some variables by other names;
# each of the two leaves the other's empty.

ADLOCK_SH := $(.PARSEDIR:%=%/)$(dir $(lastword $(MAKEFILE_LIST)))adlock.sh
ADLOCK_PROGRAM ?= $(CURDIR)$(.CURDIR)/Makefile
ADLOCK_WAIT ?= never
ADLOCK_RETRY_FAILED ?= 1

ADLOCK = ADLOCK_PROGRAM='$(ADLOCK_PROGRAM)' ADLOCK_WAIT='$(ADLOCK_WAIT)' \
	ADLOCK_RETRY_FAILED='$(ADLOCK_RETRY_FAILED)' sh -c ' \
	. "$$0" || exit 69; \
	adlock_with "$$@" || { s=$$?; [ "$$ADLOCK_VERDICT" = too-soon ] || exit "$$s"; }' \
	'$(ADLOCK_SH)'
