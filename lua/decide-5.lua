-- Purpose: puts a decision about the pace into force. Does nothing for a node that lost the lease, or that decided about an
--   older policy. Never raises the capacity above the configured one; ejects nobody.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state
-- ARGV: node, when the policy it decided about was configured in us, capacity, rate of entries, rate of calls (both per
--   second; the second counts as no lower than the first and at most twice it), the reason (a number)
-- Reply: 1 if it is in force, else 0

if not load_state() then
  return NOT_CONFIGURED
end
local holds = state.lease_owner == tonumber(ARGV[1]) and state.lease_until_ms > now_ms
if not holds or state.configured_us ~= tonumber(ARGV[2]) then
  return 0
end
local rate = math.max(0, tonumber(ARGV[4]))
local decided = {
  capacity = math.min(tonumber(ARGV[3]), state.set_capacity),
  rate = rate,
  call_rate = math.min(math.max(tonumber(ARGV[5]), rate), 2 * rate),
  reason = tonumber(ARGV[6]),
}
if decided.rate ~= state.rate or decided.call_rate ~= state.call_rate then
  -- What has flowed so far flowed at the old rates.
  take('call', 0)
  take('entry', 0)
end
for field, value in pairs(decided) do
  if state[field] ~= value then
    set(field, value)
  end
end
save()
return 1
