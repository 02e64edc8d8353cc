// The OpenID provider of npm, `oidc-provider`, as it comes: node oidc_provider.mjs <port> <client id> <secret> <redirect uri>
import Provider from 'oidc-provider';

const [port, clientId, clientSecret, redirectUri] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  pkce: { required: () => true },
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true, name: 'Ada' }),
  }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
