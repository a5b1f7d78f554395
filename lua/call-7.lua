-- Purpose: calls the first present visitors of the line, as capacity and rate allow. Any number of nodes may run it at
--   any time: what one calls, the bucket and the counts deny to the next.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over
-- ARGV: most visitors to call; at most 50 are
-- Reply: how many were called, how many absent ones were passed over
--
-- Bound: at most 4 * most + 200 members of the line are looked at. Each absent one is set aside or removed, so the next
-- run starts behind them: a crowd of absentees at the front delays the others by a few runs, once (G6).

if not load_state() then
  return NOT_CONFIGURED
end
watch()
expire(200)

local most = math.min(tonumber(ARGV[1]), 50, free_slots(), math.floor(tokens('call')))
if mode() ~= OPEN or now_ms < state.settle_until_ms or most < 1 then
  save()
  return { 0, 0 }
end

local called, skipped, budget = 0, 0, 4 * most + 200
local deadline, called_at = text(now_ms + state.claim_ms), ' ' .. text(now_ms)
local look, last = most, nil

while called < most and budget > 0 do
  local front = redis.call('ZRANGEBYSCORE', LINE, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, math.min(budget, look))
  if #front == 0 then
    break
  end
  -- Who was not there is likely not alone.
  look = most + 50
  local visitors = {}
  for i = 1, #front, 2 do
    visitors[#visitors + 1] = front[i]
  end
  local seen = scores_of(SEEN, visitors)
  local leaving, lost, aside, deadlines, notes = {}, {}, {}, {}, {}
  for i, visitor in ipairs(visitors) do
    -- Redis writes scores as `text` does.
    local score, absence = front[2 * i], now_ms - math.max(tonumber(seen[i]) or 0, state.resumed_ms)
    budget = budget - 1
    if absence > state.grace_ms then
      leaving[#leaving + 1] = visitor
      lost[#lost + 1] = visitor
      skipped = skipped + 1
    elseif absence > state.absent_ms then
      aside[#aside + 1], aside[#aside + 2] = text(tonumber(score) - ASIDE), visitor
      skipped = skipped + 1
    else
      leaving[#leaving + 1] = visitor
      local n = #notes
      deadlines[n + 1], deadlines[n + 2] = deadline, visitor
      notes[n + 1], notes[n + 2] = visitor, score .. called_at
      called, last = called + 1, score
    end
    if called == most then
      break
    end
  end
  write('ZREM', LINE, leaving)
  write('ZREM', SEEN, lost)
  write('ZADD', LINE, aside)
  write('ZADD', CALLED, deadlines)
  write('HSET', NOTES, notes)
end

if called > 0 then
  set('watermark', math.max(state.watermark, tonumber(last)))
  take('call', called)
  add('called_total', called)
end
save()
return { called, skipped }
