/*
 * The questions of a script to its agent (lib/agent), where either may die at any step, a
 * signal may cut a read short, a trap may make the script leave a question in the middle,
 * and the agent's pid may be a stranger's by the next question.
 *
 * What is claimed, of each question that the script sees to its end: it was done once and
 * once only, by the agent or by a helper run; its answer was its own; nothing was written
 * to a stranger. And no process waits for ever: each state has a way out.
 *
 *	KEEPS_WRITER   the script keeps an end of the answers that writes: no end of file
 *	NO_NUMBERS     answers have no number: one that was left behind is taken for the next
 *	ASKS_AGAIN     a read that was cut short is followed by the question once more, and
 *	               the agent answers whatever it is asked
 *	NO_LOOK        the agent's pid is believed without a look after the pipes were opened
 *	NO_WITHDRAWAL  what a dead agent may have done is not looked for
 *	IMMORTAL       the agent is never killed: then the script must not need its death
 */
#define QUESTIONS 3

mtype = { agent, nobody, stranger };

mtype holder = agent;                 /* the process with the agent's pid */
chan asked = [QUESTIONS + 1] of { byte };
chan answered = [QUESTIONS + 1] of { byte };
byte done[QUESTIONS + 1];             /* by the agent */
bool writes = false;                  /* the script holds an end of the answers that writes */
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
		:: KILLED -> holder = nobody; break             /* killed */
		fi;
		if
#ifdef ASKS_AGAIN
		:: true
#else
		:: number > last
#endif
			-> last = number;
			if
			:: done[number]++                           /* the deed */
			:: KILLED -> holder = nobody; break
			fi;
			if
			:: answered ! number
			:: KILLED -> holder = nobody; break         /* done, but not answered */
			fi
#ifndef ASKS_AGAIN
		:: else -> holder = nobody; break               /* never silence */
#endif
		fi
	:: over -> break
	od;
	if
	:: holder == nobody -> holder = stranger
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
		:: questions != nobody
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
			:: got != number -> goto read               /* one that was left behind */
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
