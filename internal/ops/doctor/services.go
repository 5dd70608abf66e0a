package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"palmares/internal/account/billing"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/notify/mail"
)

func checkRedis(ctx context.Context, cfg *Config, r report) {
	if cfg.RedisURL == "" {
		r.ok("redis", "REDIS_URL is not set: each server counts requests on its own.")
		return
	}
	state, err := quota.InspectRedis(ctx, cfg.RedisURL, cfg.Now)
	if err != nil {
		const fallback = " Each server counts requests on its own meanwhile."
		var timeout net.Error
		timedOut := ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout()
		r.addFirst("redis", err, []outcome{
			{quota.IsAuthError(err), Wrong, "Redis rejected the user, the password or a command." + fallback, "Correct REDIS_URL, or allow the user to run scripts and INFO."},
			{timedOut, Wrong, "Redis took too long to respond." + fallback, "Check that it responds and that no firewall blocks it."},
			{true, Wrong, "Redis is unreachable." + fallback, "Start it, or correct REDIS_URL."},
		})
		return
	}
	if state.IsReplica {
		r.add("redis", Wrong, "This Redis is a read-only replica.", "Set REDIS_URL to its primary.", nil)
		return
	}
	persistence := "persists its data to disk"
	if !state.Persistent {
		persistence = "persists nothing: after it restarts, the servers restore the counts they know"
	}
	r.ok("redis", "Redis %s responds and %s.", state.Version, persistence)
	// A caller whose count is evicted gets a new quota.
	used, limit := formatBytes(state.Memory), formatBytes(state.MemoryLimit)
	r.addFirst("redis memory", nil, []outcome{
		{state.MemoryLimit == 0, OK, used + " are in use, without a limit.", ""},
		{state.Policy != "noeviction", Warning, fmt.Sprintf("Redis evicts counts when its %s are full (%s).", limit, state.Policy), "Set its maxmemory-policy to noeviction."},
		{state.Memory > state.MemoryLimit/10*9, Warning, fmt.Sprintf("%s of %s are in use. Redis stops counting requests when its memory is full.", used, limit), "Raise its maxmemory."},
		{true, OK, fmt.Sprintf("%s of %s are in use, and nothing is evicted.", used, limit), ""},
	})
	r.clock("redis clock", "Redis'", state.Clock, state.LocalClock)
}

// checkMail connects and signs in to the mail server, and sends nothing.
func checkMail(ctx context.Context, cfg *Config, r report) {
	if cfg.SMTPURL == "" {
		r.addFirst("mail", nil, []outcome{
			{cfg.Private, OK, "SMTP_URL is not set: sign-in links are printed to the log.", ""},
			{true, Warning, "SMTP_URL is not set, so nobody can sign in.", "Set SMTP_URL to your mail server."},
		})
		return
	}
	mailer, err := mail.New(mail.Config{URL: cfg.SMTPURL, From: cfg.MailFrom, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.add("mail", Wrong, sentence(err.Error()), "Correct SMTP_URL or MAIL_FROM.", nil)
		return
	}
	got, err := mailer.Probe(ctx)
	if err != nil {
		p := problem.Of(err)
		r.add("mail", Wrong, p.Message, "Correct SMTP_URL (smtp:// uses STARTTLS, smtps:// uses TLS), or fix the mail server. No email was sent.", p.Cause)
		return
	}
	r.addFirst("mail", nil, []outcome{
		{!got.Encrypted && mailer.HasPassword(), Warning, "The mail server on this machine offers no encryption, so the password is not sent.", "Enable STARTTLS on the mail server, or remove the password from SMTP_URL."},
		{!got.Encrypted, OK, "The mail server on this machine accepts unencrypted connections.", ""},
		{got.SignedIn, OK, "The mail server accepts an encrypted connection and the password.", ""},
		{true, OK, "The mail server accepts an encrypted connection.", ""},
	})
}

// checkStripe only reads from Stripe.
func checkStripe(ctx context.Context, cfg *Config, r report) {
	if cfg.Stripe.SecretKey == "" {
		r.ok("stripe", "STRIPE_SECRET_KEY is not set: Pro is not for sale.")
		return
	}
	if cfg.Stripe.WebhookSecret == "" {
		r.add("stripe secret", Wrong, "STRIPE_WEBHOOK_SECRET is missing; the server does not start without it.", "Set it to the signing secret that Stripe shows for the endpoint PUBLIC_URL"+billing.EventsPath+".", nil)
	}
	stripe := billing.New(billing.Config{
		SecretKey: cfg.Stripe.SecretKey, WebhookSecret: cfg.Stripe.WebhookSecret, Price: cfg.Stripe.Price, APIBase: cfg.Stripe.APIBase, PublicURL: cfg.PublicURL,
	})
	price, err := stripe.InspectPrice(ctx)
	r.addFirst("stripe", err, []outcome{
		{billing.IsInvalidKey(err), Wrong, "Stripe rejected the key in STRIPE_SECRET_KEY.", "Set it to a key that Stripe's dashboard shows as active."},
		{billing.IsForbidden(err), Wrong, "The key in STRIPE_SECRET_KEY has no permission to read prices.", "Use a secret key, or give the restricted key that permission."},
		{err != nil, Wrong, "Stripe does not respond.", "Check that this machine can reach Stripe's API, and Stripe's status page."},
		{!cfg.Private && strings.HasPrefix(cfg.Stripe.SecretKey, "sk_test_"), Warning, "Stripe accepts the key, but it is a test key: no payments are made.", "Set the live key to sell Pro."},
		{true, OK, "Stripe accepts the key.", ""},
	})
	if err != nil {
		return
	}
	const unreadable = "Look them up in Stripe's dashboard, or give the key permission to read them."
	advertised := fmt.Sprintf("%d EUR a month before tax", billing.MonthlyEuros)
	r.addFirst("price", nil, []outcome{
		{price.ID == "" && cfg.Stripe.Price != "", Wrong, "The price in STRIPE_PRICE does not exist.", "Correct STRIPE_PRICE, or remove it and run palmares billing setup."},
		{price.ID == "", Wrong, "Stripe has no price for Pro.", "Run palmares billing setup."},
		{!price.Active, Wrong, fmt.Sprintf("The price %s is archived.", price.ID), "Set STRIPE_PRICE to another one, or remove it and run palmares billing setup."},
		{!price.AsAdvertised && cfg.Stripe.Price == "", Wrong, fmt.Sprintf("The price %s is not %s, as the website says.", price.ID, advertised), "Archive it and run palmares billing setup."},
		{!price.AsAdvertised, Warning, fmt.Sprintf("The price %s is not %s, as the website says.", price.ID, advertised), "Set STRIPE_PRICE to another one, unless this is intended."},
		{true, OK, fmt.Sprintf("The price %s is %s.", price.ID, advertised), ""},
	})
	taxed, err := stripe.ComputesTax(ctx)
	r.addFirst("tax", err, []outcome{
		{err != nil, Warning, "The settings of Stripe Tax cannot be read.", unreadable},
		{!taxed, Wrong, "Stripe Tax is not set up, so nobody can subscribe.", "Add your address and registrations under Tax in Stripe's dashboard."},
		{true, OK, "Stripe calculates taxes.", ""},
	})
	page, err := stripe.InspectPortal(ctx)
	r.addFirst("managing", err, []outcome{
		{err != nil, Warning, "The settings of Stripe's customer portal cannot be read.", unreadable},
		{page == billing.PortalConfigs{}, Wrong, "Stripe's customer portal is not set up, so subscribers cannot change their card, see invoices or cancel.", "Run palmares billing setup."},
		{true, OK, "Subscribers can manage cards, invoices and cancellation in Stripe's customer portal.", ""},
	})
	if cfg.Private { // Stripe cannot reach it; developers use Stripe's CLI to forward events
		return
	}
	missing, err := stripe.MissingEvents(ctx)
	r.addFirst("events", err, []outcome{
		{err != nil, Warning, "The list of webhook endpoints cannot be read.", unreadable},
		{len(missing) == len(billing.Events), Warning, "Stripe sends no events to " + cfg.PublicURL + billing.EventsPath + ".", "Add this endpoint in Stripe's dashboard; palmares billing setup lists the events."},
		{len(missing) > 0, Warning, "Stripe does not send " + strings.Join(missing, ", ") + ".", "Add these events to the endpoint in Stripe's dashboard."},
		{true, OK, "Stripe sends all required events.", ""},
	})
}
