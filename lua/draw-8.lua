-- Purpose: puts a stretch of the roster into the line, each visitor at the score they drew. Whoever left is passed over.
--   Repeats and other nodes change nothing, because every node draws the same.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: the epoch it is of; the arrival of the last of the stretch, us; 1 if the roster ends there; then two per visitor (at most
--   200): visitor, draw
-- Reply: 1 while the draw goes on or when this completed it, 0 when there is none

if not load_state() then
  return NOT_CONFIGURED
end
local is_public = redis.call('HEXISTS', STATE, 'public') == 1
if state.epoch ~= tonumber(ARGV[1]) or mode() ~= DRAWING or not is_public then
  return 0
end
local visitors = {}
for i = 4, #ARGV, 2 do
  visitors[#visitors + 1] = ARGV[i]
end
if #visitors > 0 then
  local arrivals, ended = scores_of(ROSTER, visitors), scores_of(OVER, visitors)
  local line, seen, now = {}, {}, text(now_ms)
  for i, visitor in ipairs(visitors) do
    local stayed = arrivals[i] and not (ended[i] and tonumber(ended[i]) >= tonumber(arrivals[i]))
    if stayed then
      line[#line + 1], line[#line + 2] = ARGV[3 + 2 * i], visitor
      seen[#seen + 1], seen[#seen + 2] = now, visitor
    end
  end
  if #line > 0 then
    redis.call('ZADD', LINE, 'NX', unpack(line))
    redis.call('ZADD', SEEN, 'NX', unpack(seen))
  end
end
set('drawn_to', math.max(state.drawn_to, tonumber(ARGV[2])))
if ARGV[3] == '1' then
  -- Once: this does nothing more when everybody drew.
  set('drawn', 1)
  if state.sealed_since_ms < state.since_ms then
    -- The roster may be lost, and who was in it comes back with what they drew, now that it can be known. Whoever came later
    -- waits here already.
    set('settle_until_ms', math.max(state.settle_until_ms, now_ms + state.settle_ms))
  end
end
save()
return 1
