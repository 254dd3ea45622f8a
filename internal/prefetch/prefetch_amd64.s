#include "textflag.h"

// func line(address unsafe.Pointer)
TEXT ·line(SB), NOSPLIT, $0-8
	MOVQ address+0(FP), AX
	PREFETCHT0 (AX)
	RET
