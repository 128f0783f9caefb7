-- The action daegi-gate of HAProxy: sends each request's headers to the gate of daegi at the address of its argument, and answers
-- the client itself unless the gate allows the request. A gate that cannot be reached refuses: 503.

local SENT = {"cookie", "authorization", "daegi-pass", "accept"}
local NAMED = {"daegi-user", "daegi-number", "daegi-lane"}
local ANSWERED = {"location", "set-cookie", "content-type", "cache-control", "vary", "www-authenticate"}
-- In milliseconds. The gate answers from memory.
local TIMEOUT = 2000

local function refuse(txn, status, headers, body)
  local reply = txn:reply({status = status})
  for _, name in ipairs(ANSWERED) do
    for index = 0, headers[name] and #headers[name] or -1 do
      if headers[name][index] then reply:add_header(name, headers[name][index]) end
    end
  end
  if body and #body > 0 then reply:set_body(body) end
  txn:done(reply)
end

core.register_action("daegi-gate", {"http-req"}, function(txn, gate)
  local received = txn.http:req_get_headers()
  local sent = {
    ["x-original-uri"] = {txn.f:pathq()},
    ["x-original-method"] = {txn.f:method()},
    ["x-forwarded-proto"] = {txn.f:ssl_fc() == 1 and "https" or "http"},
  }
  for _, name in ipairs(SENT) do
    local values = {}
    for index = 0, received[name] and #received[name] or -1 do
      if received[name][index] then values[#values + 1] = received[name][index] end
    end
    if #values > 0 then sent[name] = values end
  end
  local answer = core.httpclient():get({url = gate, headers = sent, timeout = TIMEOUT})
  if not answer or not answer.status or answer.status == 0 then
    return refuse(txn, 503, {["cache-control"] = {[0] = "no-store"}}, nil)
  end
  if answer.status ~= 200 then return refuse(txn, answer.status, answer.headers, answer.body) end
  -- They replace headers of these names that a client sent.
  for _, name in ipairs(NAMED) do
    txn.http:req_set_header(name, answer.headers[name] and answer.headers[name][0] or "")
  end
end, 1)
