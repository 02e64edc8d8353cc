// The whole way of a tool client with oauth4webapi, a strict judge of the standards: discover, register, approve (a form
// post in place of the person), exchange, refresh, revoke. Prints one JSON line; any deviation is an exception.
//
//     node oauth_client.mjs <issuer> <session cookie> <redirect uri registered> <redirect uri asked for>

import * as oauth from "oauth4webapi";

const [issuer, cookie, registered, redirectUri] = process.argv.slice(2);
const server = new URL(issuer);
const resource = new URL("/mcp/rpc", server);
const insecure = { [oauth.allowInsecureRequests]: true };

const protectedResource = await oauth
  .resourceDiscoveryRequest(resource, insecure)
  .then((answer) => oauth.processResourceDiscoveryResponse(resource, answer));
const as = await oauth
  .discoveryRequest(new URL(protectedResource.authorization_servers[0]), { ...insecure, algorithm: "oauth2" })
  .then((answer) => oauth.processDiscoveryResponse(server, answer));

const client = await oauth
  .dynamicClientRegistrationRequest(
    as,
    { client_name: "oauth4webapi", redirect_uris: [registered], token_endpoint_auth_method: "none" },
    insecure,
  )
  .then(oauth.processDynamicClientRegistrationResponse);
const auth = oauth.None();

const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const asked = {
  client_id: client.client_id,
  redirect_uri: redirectUri,
  response_type: "code",
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  resource: resource.href,
  state,
};
const approved = await fetch(as.authorization_endpoint, {
  method: "POST",
  redirect: "manual",
  headers: { cookie: `auth_token=${cookie}`, origin: issuer, "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams({ ...asked, action: "approve" }),
});
if (approved.status !== 302) throw new Error(`approve: ${approved.status} ${await approved.text()}`);
const back = new URL(approved.headers.get("location"));
if (`${back.origin}${back.pathname}` !== redirectUri) throw new Error(`sent to ${back}`);
const parameters = oauth.validateAuthResponse(as, client, back, state);

const more = { ...insecure, additionalParameters: { resource: resource.href } };
const first = await oauth
  .authorizationCodeGrantRequest(as, client, auth, parameters, redirectUri, verifier, more)
  .then((answer) => oauth.processAuthorizationCodeResponse(as, client, answer));
const second = await oauth
  .refreshTokenGrantRequest(as, client, auth, first.refresh_token, more)
  .then((answer) => oauth.processRefreshTokenResponse(as, client, answer));
if (second.refresh_token === first.refresh_token) throw new Error("not rotated");
await oauth.revocationRequest(as, client, auth, second.refresh_token, insecure).then(oauth.processRevocationResponse);
const refused = await oauth
  .refreshTokenGrantRequest(as, client, auth, second.refresh_token, more)
  .then((answer) => oauth.processRefreshTokenResponse(as, client, answer))
  .then(
    () => "answered",
    (error) => error.error,
  );
console.log(JSON.stringify({ expires_in: first.expires_in, token_type: first.token_type, refused }));
