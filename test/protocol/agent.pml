/*
 * The questions of a script to its agent (cmd/adlock/agent_protocol.go), where either may die at any step, a
 * signal may cut a read short, a trap may make the script leave a question in the middle,
 * and the agent's pid may be a stranger's by the next question.
 *
 * What must hold for each question that the script does not leave: it was done exactly once,
 * by the agent or by a helper run; the script read the answer to it and to no other; nothing
 * was written to a stranger. And no process waits for ever: each state has a way out.
 *
 * Variants (-D), which must fail except for the last:
 *	KEEPS_WRITER   the script keeps the answers open for writing: it reads no end of file
 *	NO_NUMBERS     answers have no number: one that was left behind is taken for the next
 *	ASKS_AGAIN     after a read that was cut short the script asks again, and the agent
 *	               answers every question
 *	NO_LOOK        the agent's pid is not checked after the pipes were opened
 *	NO_WITHDRAWAL  what a dead agent may have done is not withdrawn
 *	IMMORTAL       the agent is never killed: then the script must not need its death
 */
#define QUESTIONS 3

mtype = { agent, vacant, stranger };

mtype holder = agent;                 /* the process with the agent's pid */
chan asked = [QUESTIONS + 1] of { byte };
chan answered = [QUESTIONS + 1] of { byte };
byte done[QUESTIONS + 1];             /* by the agent */
bool writes = false;                  /* the script has the answers open for writing */
bool over = false;                    /* the script is gone */
byte signals = 2;                     /* that are still to come */

#ifdef IMMORTAL
#define KILLED false
#else
#define KILLED true
#endif

active proctype Agent()
{
	byte number, last = 0;
	do
	:: holder == agent && !over ->
		if
		:: atomic { asked ? number; }
		:: over -> break
		:: KILLED -> holder = vacant; break             /* killed */
		fi;
		if
#ifdef ASKS_AGAIN
		:: true
#else
		:: number > last
#endif
			-> last = number;
			if
			:: done[number]++                           /* carried out */
			:: KILLED -> holder = vacant; break
			fi;
			if
			:: answered ! number
			:: KILLED -> holder = vacant; break         /* done, but not answered */
			fi
#ifndef ASKS_AGAIN
		:: else -> holder = vacant; break               /* it ends, and is never silent */
#endif
		fi
	:: over -> break
	od;
	if
	:: holder == vacant -> holder = stranger
	:: true
	fi
}

active proctype Script()
{
	byte number = 0, got;
	mtype answers, questions;
	do
	:: number == QUESTIONS -> break
	:: number < QUESTIONS ->
		number++;
		answers = holder; writes = true;                /* 9<>A */
		questions = holder;                             /* 8<A 9<>Q */
#ifndef KEEPS_WRITER
		writes = false;
#endif
		if
#ifdef NO_LOOK
		:: questions != vacant
#else
		:: holder == agent
#endif
			->
			assert(answers == agent && questions == agent); /* else a stranger is written to */
			asked ! number;
			goto read
		:: else -> goto helper
		fi;
read:
		if
		:: atomic { answered ? got; }
#ifndef NO_NUMBERS
			if
			:: got != number -> goto read               /* an answer that was left behind */
			:: else
			fi;
#endif
			assert(got == number);
			assert(done[number] == 1);
			goto next
		:: empty(answered) && holder != agent && !writes -> /* end of file */
#ifndef NO_WITHDRAWAL
			done[number] = 0;
#endif
			goto helper
		:: signals > 0 -> signals--;                    /* a trap leaves the question, or ends the script */
			if
			:: goto next
			:: goto end
			fi
#ifdef ASKS_AGAIN
		:: signals > 0 && len(asked) < QUESTIONS -> signals--; asked ! number; goto read
#endif
		fi;
helper:
		assert(done[number] == 0);                      /* a helper run does it */
next:
		skip
	od;
end:
	over = true
}

/* Nothing can happen any more: then the script has come to its end. */
active proctype Waiting()
{
	timeout -> assert(over)
}
