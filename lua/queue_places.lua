-- Purpose: what scripts share that tell visitors their places; put behind `queue_slots.lua`.
-- KEYS: those of `queue.lua`
-- ARGV: none of its own
-- Reply: none of its own. A place is six integers, unused ones 0:
--   0 none | 1 waiting, score, 1 + how many are ahead or 0 | 2 called, score, deadline ms, wait ms | 3 inside, score, end ms, called ms, admitted ms,
--   fresh | 4 not open, mode | 5 in the roster, arrival, when the history began whose roster that is, ms

local P_NONE, P_WAITING, P_CALLED, P_INSIDE, P_NOT_OPEN, P_REGISTERED = 0, 1, 2, 3, 4, 5
-- Draws are below, arrivals (since 2005) above: who draws stands before who comes later.
local DRAWS_END = 1125899906842624

-- The first of every `width` arguments; the last one of all is nobody's.
local function visitors_of(width)
  local visitors = {}
  for i = 1, #ARGV - 1, width do
    visitors[#visitors + 1] = ARGV[i]
  end
  return visitors
end

local function place(code, a, b, c, d, e)
  return { code, a or 0, b or 0, c or 0, d or 0, e or 0 }
end

-- As `append(reply, place(P_WAITING, score))`: what most of a batch are told.
local function append_waiting(reply, score)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5], reply[n + 6] = P_WAITING, score, 0, 0, 0, 0
end

local function takes_visitors()
  local now = mode()
  return now == OPEN or now == PAUSED or now == PREQUEUE or now == DRAWING
end

-- What the line holds as a score: the score, and whether its owner is set aside; nil when there is none.
local function score_in_line(held)
  local score = tonumber(held)
  if score and score < 0 then
    return score + ASIDE, true
  end
  return score, false
end

local function line_score(visitor)
  return score_in_line(redis.call('ZSCORE', LINE, visitor))
end

-- Marks a member of the line as present.
local function mark_seen(visitor, score, aside)
  redis.call('ZADD', SEEN, text(now_ms), visitor)
  if aside then
    redis.call('ZADD', LINE, text(score), visitor)
  end
end

local function leave_line(visitor)
  redis.call('ZREM', SEEN, visitor)
  return redis.call('ZREM', LINE, visitor)
end

local function inside_place(visitor, ends)
  local score, called_ms, admitted_ms = note_of(visitor)
  admitted_ms = admitted_ms or ends - state.session_ms
  return place(P_INSIDE, score, ends, called_ms or admitted_ms, admitted_ms, 0)
end

-- The place of a visitor who is called or inside, else nil. One that ended is dropped here, and the second value says so.
local function slot_of(visitor)
  local deadline = redis.call('ZSCORE', CALLED, visitor)
  if deadline then
    deadline = claim_ends(deadline)
    if deadline > now_ms then
      return place(P_CALLED, note_of(visitor), deadline)
    end
    drop(CALLED, { visitor })
    add('no_shows_total', 1)
    return nil, true
  end
  local ends = tonumber(redis.call('ZSCORE', INSIDE, visitor))
  if ends and ends > now_ms then
    return inside_place(visitor, ends)
  elseif ends then
    drop(INSIDE, { visitor })
    return nil, true
  end
  return nil, false
end

-- Lets a visitor in now.
local function admit(visitor, score, called_ms)
  local ends = now_ms + state.session_ms
  take('entry', 1)
  redis.call('ZADD', INSIDE, text(ends), visitor)
  redis.call('HSET', NOTES, visitor, table.concat({ text(score), text(called_ms), text(now_ms) }, ' '))
  add('admitted_total', 1)
  return place(P_INSIDE, score, ends, called_ms, now_ms, 1)
end

local function enter_line(visitor, score)
  redis.call('ZADD', LINE, 'NX', text(score), visitor)
  redis.call('ZADD', SEEN, text(now_ms), visitor)
  set('last_score', math.max(state.last_score, score))
  add('joined_total', 1)
  return place(P_WAITING, score)
end

-- Whether who leaves is taken out of the roster. From the opening on nodes read it for the digest, in stretches, and a
-- roster that lost somebody in between would not be the one they digest.
local function may_leave_roster()
  return now_ms < state.opens_at_ms and not is_sealed()
end

-- In the roster of the present history; or in the one that was closed, whatever was lost since.
local function registered(arrival)
  return place(P_REGISTERED, arrival, state.sealed_since_ms > 0 and state.sealed_since_ms or state.since_ms)
end

local function enter_roster(visitor, arrival)
  redis.call('ZADD', ROSTER, 'NX', text(arrival), visitor)
  set('last_score', math.max(state.last_score, arrival))
  add('joined_total', 1)
  return registered(arrival)
end

-- The place of someone who takes part in a draw that is still to come, else nil.
local function roster_place(visitor)
  local arrival = state.lottery == 1 and state.drawn == 0 and redis.call('ZSCORE', ROSTER, visitor)
  if not arrival or is_over(visitor, tonumber(arrival) / 1000) then
    return nil
  end
  return registered(tonumber(arrival))
end

-- Gives back the place a token proves to someone the room does not know. A token from before the present history is
-- believed for one grace after that history began; with a later one the place was given up.
local function restore(visitor, score, issued_ms)
  if not takes_visitors() then
    return place(P_NOT_OPEN, mode())
  end
  -- Whoever is unknown may be the first to meet a store that fell back.
  same_history()
  local came_for_the_draw = state.lottery == 1 and score >= DRAWS_END and score < state.opens_at_ms * 1000
  -- Nobody need be seen in the pre-queue, so whoever came in it has until the opening, and one grace.
  local is_in_time = believes_lost_history() or (came_for_the_draw and now_ms < state.opens_at_ms + state.grace_ms)
  local of_lost_history = issued_ms < state.since_ms and is_in_time
  -- A token that was given anew in the pre-queue stands for the arrival it tells.
  local held_since_ms = came_for_the_draw and math.min(issued_ms, score / 1000) or issued_ms
  if not of_lost_history or is_over(visitor, held_since_ms) or score <= 0 or score >= ASIDE then
    return place(P_NONE)
  end
  local draws = came_for_the_draw and state.drawn == 0
  if came_for_the_draw and is_sealed() then
    -- Who came in the history whose roster was closed is in it, also when it was lost since. What they drew the node knows,
    -- or will with its next look where everybody drew already.
    if issued_ms >= state.sealed_since_ms and score <= state.sealed_until then
      return registered(score)
    end
    -- Who came before, and not back in time, is not: a draw of theirs could not be verified. They are next behind the drawn.
    draws = false
  end
  local key = draws and ROSTER or LINE
  -- Only scores that different nodes minted without the store can be equal.
  while redis.call('ZCOUNT', key, text(score), text(score)) > 0 do
    score = score + 1
  end
  return (draws and enter_roster or enter_line)(visitor, score)
end
