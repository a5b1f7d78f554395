-- Purpose: marks waiting visitors as present, and gives back proven places that a lost store forgot.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: three per visitor: visitor, the score their token proves, when it was issued in ms; then the epoch the
--   caller knows or 0 (replies -2 if it is another)
-- Reply: a place per visitor, flat

if not load_state() then
  return NOT_CONFIGURED
elseif is_other_epoch(ARGV[#ARGV]) then
  return OTHER_EPOCH
end

-- Of somebody who was not simply waiting when this run began.
local function look_up(visitor, proven_score, issued_ms)
  local waiting, aside = line_score(visitor)
  if waiting then
    mark_seen(visitor, waiting, aside)
    return place(P_WAITING, waiting)
  end
  local slot, ended = slot_of(visitor)
  slot = slot or roster_place(visitor)
  if not slot and ended then
    return place(P_NONE)
  end
  return slot or restore(visitor, proven_score, issued_ms)
end

local visitors = visitors_of(3)
local scores = scores_of(LINE, visitors)
local reply, present, now = {}, {}, text(now_ms)
for i, visitor in ipairs(visitors) do
  local score, aside = score_in_line(scores[i])
  if score and not aside then
    append_waiting(reply, score)
    present[#present + 1], present[#present + 2] = now, visitor
  else
    append(reply, look_up(visitor, tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])))
  end
end
write('ZADD', SEEN, present)
save()
return reply
