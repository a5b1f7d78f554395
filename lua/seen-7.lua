-- Purpose: marks waiting visitors as present, and gives back proven places that a lost store forgot.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] over, KEYS[7] roster
-- ARGV: three per visitor: visitor, the score their token proves, when it was issued in ms; then the epoch the
--   caller knows or 0 (replies -2 if it is another)
-- Reply: a place per visitor, flat

if not load_state() then
  return NOT_CONFIGURED
elseif is_other_epoch(ARGV[#ARGV]) then
  return OTHER_EPOCH
end
local reply = {}
for i = 1, #ARGV - 1, 3 do
  local visitor, score, issued_ms = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local waiting, aside = line_score(visitor)
  if waiting then
    mark_seen(visitor, waiting, aside)
    append(reply, place(P_WAITING, waiting))
  else
    local slot, ended = slot_of(visitor)
    slot = slot or roster_place(visitor)
    if not slot and ended then
      slot = place(P_NONE)
    end
    append(reply, slot or restore(visitor, score, issued_ms))
  end
end
save()
return reply
