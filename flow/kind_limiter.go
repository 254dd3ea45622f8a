package flow

import "github.com/penstock-go/penstock/rule"

func newLimiter(Rule, rule.Env) rule.Limiter { panic("to be merged") }

func adopt(rule.Limiter, Rule, rule.Env) rule.Limiter { panic("to be merged") }
